// The loops of tree_kernels.hpp, written once; included after kernels_inl.hpp, whose rules hold here too.
//
// One lane is one point (or one box), so that the accumulators of clause 1 are whole vectors and the tree of sums needs
// no shuffles. Up to eight columns each accumulator takes one column: fma(t, t, +0) is t * t rounded and +0 + t is t,
// and an accumulator without a column is +0, which added to a number that is not negative changes nothing. Those
// operations are left out.

#include "simd/tree_kernels.hpp"

HWY_BEFORE_NAMESPACE();
namespace vicinal::cpu {
namespace VICINAL_SIMD_NAMESPACE {

// What a column adds, from its difference or gap `t`.
template <KeyOp op, class V>
HWY_INLINE V term(V t) {
  return op == KeyOp::squares ? hn::Mul(t, t) : t;
}
template <KeyOp op, class V>
HWY_INLINE V add_term(V t, V sum) {
  if constexpr (op == KeyOp::squares) {
    return hn::MulAdd(t, t, sum);
  } else if constexpr (op == KeyOp::absolutes) {
    return hn::Add(sum, t);
  } else {
    return hn::Max(sum, t);
  }
}

// The contract's tree over the first `count` accumulators; the others are +0.
template <KeyOp op, int count, class V>
HWY_INLINE V join_accumulators(const V* a) {
  V even = a[0];
  if constexpr (count > 4) even = join<op>(even, a[4]);
  if constexpr (count > 6) {
    even = join<op>(even, join<op>(a[2], a[6]));
  } else if constexpr (count > 2) {
    even = join<op>(even, a[2]);
  }
  if constexpr (count == 1) return even;
  if constexpr (count > 1) {
    V odd = a[1];
    if constexpr (count > 5) odd = join<op>(odd, a[5]);
    if constexpr (count > 7) {
      odd = join<op>(odd, join<op>(a[3], a[7]));
    } else if constexpr (count > 3) {
      odd = join<op>(odd, a[3]);
    }
    return join<op>(even, odd);
  }
}

// Keys from `difference(j)`, which is |x_j - y_j| (its sign does not matter for squares) or the gap, of each lane.
template <KeyOp op, int columns, class Difference>
HWY_INLINE DoubleVec lane_keys(std::int64_t d, const Difference& difference) {
  const DoubleTag dd;
  if constexpr (columns > 0) {
    DoubleVec a[columns];
#pragma GCC unroll 8
    for (int j = 0; j < columns; ++j) a[j] = term<op>(difference(j));
    return join_accumulators<op, columns>(a);
  } else {
    DoubleVec a[8];
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) a[i] = hn::Zero(dd);
    std::int64_t j = 0;
    for (; j + 8 <= d; j += 8) {
#pragma GCC unroll 8
      for (int i = 0; i < 8; ++i) a[i] = add_term<op>(difference(j + i), a[i]);
    }
#pragma GCC unroll 7
    for (int i = 0; i < 7; ++i) {
      if (j + i < d) a[i] = add_term<op>(difference(j + i), a[i]);
    }
    return join_accumulators<op, 8>(a);
  }
}

template <class Mask>
HWY_INLINE std::uint32_t bits_of(Mask mask) {
  std::uint8_t bytes[8] = {};
  hn::StoreMaskBits(DoubleTag(), mask, bytes);
  return bytes[0];
}

// `inside`: written where `ranges` is true.
template <KeyOp op, class T, int columns, bool ranges>
HWY_INLINE std::uint32_t vector_box_keys(const double* low, const double* high, const T* boxes, std::int64_t d,
                                         double limit, double* keys, std::uint32_t* inside) {
  const DoubleTag dd;
  const DoubleVec limits = hn::Set(dd, limit);
  std::uint32_t near = 0;
  std::uint32_t within = 0;
#pragma GCC unroll 8
  for (int lane = 0; lane < 8; lane += kDoubleLanes) {
    const auto below = [&](std::int64_t j)
                           HWY_ATTR { return hn::Sub(load_widened(dd, boxes + j * 16 + lane), hn::Set(dd, high[j])); };
    const auto above = [&](std::int64_t j) HWY_ATTR {
      return hn::Sub(hn::Set(dd, low[j]), load_widened(dd, boxes + j * 16 + 8 + lane));
    };
    const DoubleVec key = lane_keys<op, columns>(
        d, [&](std::int64_t j) HWY_ATTR { return hn::Max(hn::Max(below(j), above(j)), hn::Zero(dd)); });
    const std::uint32_t bits = bits_of(hn::Le(key, limits));
    near |= bits << lane;
    if constexpr (ranges) {
      if (columns > 0 || bits != 0) {
        const DoubleVec farthest = lane_keys<op, columns>(d, [&](std::int64_t j) HWY_ATTR {
          const DoubleVec t = hn::Min(below(j), above(j));  // minus the larger of hi - x and x - lo
          return op == KeyOp::squares ? t : hn::Abs(t);
        });
        within |= bits_of(hn::Le(farthest, limits)) << lane;
      }
    }
    hn::StoreU(key, dd, keys + lane);
  }
  if constexpr (ranges) *inside = within;
  return near;
}

template <KeyOp op, class T, int columns>
HWY_INLINE std::int64_t vector_point_keys(const double* x, const T* points, std::int64_t count, std::int64_t d,
                                          double limit, double* keys, std::int32_t* at) {
  const DoubleTag dd;
  const DoubleVec limits = hn::Set(dd, limit);
  std::int64_t found = 0;
  for (std::int64_t first = 0; first < count; first += 8, points += 8 * d) {
#pragma GCC unroll 8
    for (int lane = 0; lane < 8; lane += kDoubleLanes) {
      const DoubleVec key = lane_keys<op, columns>(d, [&](std::int64_t j) HWY_ATTR {
        const DoubleVec t = hn::Sub(hn::Set(dd, x[j]), load_widened(dd, points + j * 8 + lane));
        return op == KeyOp::squares ? t : hn::Abs(t);
      });
      const auto near = hn::Le(key, limits);
      if (HWY_LIKELY(hn::AllFalse(dd, near))) continue;
      const std::int64_t here = count - first - lane;  // lanes beyond the last point hold nothing
      if (here <= 0) continue;
      std::uint32_t bits = bits_of(near);
      if (here < kDoubleLanes) bits &= (std::uint32_t{1} << here) - 1;
      alignas(64) double lane_key[8];
      hn::StoreU(key, dd, lane_key);
      while (bits != 0) {
        const int i = __builtin_ctz(bits);
        bits &= bits - 1;
        keys[found] = lane_key[i];
        at[found] = static_cast<std::int32_t>(first) + lane + i;
        ++found;
      }
    }
  }
  return found;
}

// Without a fused multiply-add in vectors: the same, one lane at a time.
template <KeyOp op, class Difference>
HWY_INLINE double scalar_key(std::int64_t d, const Difference& difference) {
  double a[8] = {};
  for (std::int64_t j = 0; j < d; ++j) a[j & 7] = accumulate_scalar<op>(difference(j), 0.0, a[j & 7]);
  return combine<op>(a);
}

template <KeyOp op, class T, bool ranges>
HWY_INLINE std::uint32_t scalar_box_keys(const double* low, const double* high, const T* boxes, std::int64_t d,
                                         double limit, double* keys, std::uint32_t* inside) {
  std::uint32_t near = 0;
  std::uint32_t within = 0;
  for (int lane = 0; lane < 8; ++lane) {
    const auto below = [&](std::int64_t j) { return static_cast<double>(boxes[j * 16 + lane]) - high[j]; };
    const auto above = [&](std::int64_t j) { return low[j] - static_cast<double>(boxes[j * 16 + 8 + lane]); };
    keys[lane] = scalar_key<op>(d, [&](std::int64_t j) {
      const double gap = below(j) > above(j) ? below(j) : above(j);
      return gap > 0 ? gap : 0.0;
    });
    near |= static_cast<std::uint32_t>(keys[lane] <= limit) << lane;
    if (!ranges || keys[lane] > limit) continue;
    const double farthest = scalar_key<op>(d, [&](std::int64_t j) {
      return below(j) < above(j) ? below(j) : above(j);  // minus the larger of hi - x and x - lo
    });
    within |= static_cast<std::uint32_t>(farthest <= limit) << lane;
  }
  if constexpr (ranges) *inside = within;
  return near;
}

template <KeyOp op, class T>
HWY_INLINE std::int64_t scalar_point_keys(const double* x, const T* points, std::int64_t count, std::int64_t d,
                                          double limit, double* keys, std::int32_t* at) {
  std::int64_t found = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const T* point = points + (i & ~std::int64_t{7}) * d + (i & 7);
    const double key = scalar_key<op>(d, [&](std::int64_t j) { return x[j] - static_cast<double>(point[j * 8]); });
    if (key > limit) continue;
    keys[found] = key;
    at[found] = static_cast<std::int32_t>(i);
    ++found;
  }
  return found;
}

template <KeyOp op, class T, bool ranges>
HWY_INLINE std::uint32_t box_bounds(const double* low, const double* high, const void* boxes, std::int64_t d,
                                    double limit, double* keys, std::uint32_t* inside) {
  const T* from = static_cast<const T*>(boxes);
  if constexpr (kFusedMultiplyAdd) {
    switch (d) {
      case 1:
        return vector_box_keys<op, T, 1, ranges>(low, high, from, d, limit, keys, inside);
      case 2:
        return vector_box_keys<op, T, 2, ranges>(low, high, from, d, limit, keys, inside);
      case 3:
        return vector_box_keys<op, T, 3, ranges>(low, high, from, d, limit, keys, inside);
      case 4:
        return vector_box_keys<op, T, 4, ranges>(low, high, from, d, limit, keys, inside);
      case 5:
        return vector_box_keys<op, T, 5, ranges>(low, high, from, d, limit, keys, inside);
      case 6:
        return vector_box_keys<op, T, 6, ranges>(low, high, from, d, limit, keys, inside);
      case 7:
        return vector_box_keys<op, T, 7, ranges>(low, high, from, d, limit, keys, inside);
      case 8:
        return vector_box_keys<op, T, 8, ranges>(low, high, from, d, limit, keys, inside);
      default:
        return vector_box_keys<op, T, 0, ranges>(low, high, from, d, limit, keys, inside);
    }
  } else {
    return scalar_box_keys<op, T, ranges>(low, high, from, d, limit, keys, inside);
  }
}

template <KeyOp op, class T>
std::uint32_t box_keys(const double* low, const double* high, const void* boxes, std::int64_t d, double limit,
                       double* keys) {
  return box_bounds<op, T, false>(low, high, boxes, d, limit, keys, nullptr);
}

template <KeyOp op, class T>
std::uint32_t box_ranges(const double* x, const void* boxes, std::int64_t d, double limit, double* keys,
                         std::uint32_t* inside) {
  return box_bounds<op, T, true>(x, x, boxes, d, limit, keys, inside);
}

template <KeyOp op, class T>
std::int64_t point_keys(const double* x, const void* points, std::int64_t count, std::int64_t d, double limit,
                        double* keys, std::int32_t* at) {
  const T* from = static_cast<const T*>(points);
  if constexpr (kFusedMultiplyAdd) {
    switch (d) {
      case 1:
        return vector_point_keys<op, T, 1>(x, from, count, d, limit, keys, at);
      case 2:
        return vector_point_keys<op, T, 2>(x, from, count, d, limit, keys, at);
      case 3:
        return vector_point_keys<op, T, 3>(x, from, count, d, limit, keys, at);
      case 4:
        return vector_point_keys<op, T, 4>(x, from, count, d, limit, keys, at);
      case 5:
        return vector_point_keys<op, T, 5>(x, from, count, d, limit, keys, at);
      case 6:
        return vector_point_keys<op, T, 6>(x, from, count, d, limit, keys, at);
      case 7:
        return vector_point_keys<op, T, 7>(x, from, count, d, limit, keys, at);
      case 8:
        return vector_point_keys<op, T, 8>(x, from, count, d, limit, keys, at);
      default:
        return vector_point_keys<op, T, 0>(x, from, count, d, limit, keys, at);
    }
  } else {
    return scalar_point_keys<op, T>(x, from, count, d, limit, keys, at);
  }
}

// No branch can predict where the entry belongs, so all entries are written: each is the one before it, the new one or
// itself.
inline void insert_entry(double key, std::int64_t id, double* keys, std::int64_t* ids, std::int64_t size) {
  const DoubleTag dd;
  const hn::RebindToSigned<DoubleTag> di;
  const auto new_key = hn::Set(dd, key);
  const auto new_id = hn::Set(di, id);
  const auto comes_before = [&](auto keys_there, auto ids_there) HWY_ATTR {
    const auto smaller_id = hn::RebindMask(dd, hn::Lt(new_id, ids_there));
    return hn::Or(hn::Lt(new_key, keys_there), hn::And(hn::Eq(new_key, keys_there), smaller_id));
  };
  for (std::int64_t first = (size - 1) / kDoubleLanes * kDoubleLanes; first >= 0; first -= kDoubleLanes) {
    const auto former_keys = hn::LoadU(dd, keys + first - 1);
    const auto former_ids = hn::LoadU(di, ids + first - 1);
    const auto keys_here = hn::LoadU(dd, keys + first);
    const auto ids_here = hn::LoadU(di, ids + first);
    const auto moves = comes_before(former_keys, former_ids);
    const auto enters = comes_before(keys_here, ids_here);
    hn::StoreU(hn::IfThenElse(moves, former_keys, hn::IfThenElse(enters, new_key, keys_here)), dd, keys + first);
    hn::StoreU(hn::IfThenElse(hn::RebindMask(di, moves), former_ids,
                              hn::IfThenElse(hn::RebindMask(di, enters), new_id, ids_here)),
               di, ids + first);
  }
}

template <KeyOp op, class T>
constexpr void fill_tree_keys(TreeKernels& table, Element element) {
  table.boxes[static_cast<int>(op)][static_cast<int>(element)] = box_keys<op, T>;
  table.ranges[static_cast<int>(op)][static_cast<int>(element)] = box_ranges<op, T>;
  table.points[static_cast<int>(op)][static_cast<int>(element)] = point_keys<op, T>;
}

template <KeyOp op>
constexpr void fill_tree_keys(TreeKernels& table) {
  fill_tree_keys<op, std::uint8_t>(table, Element::uint8);
  fill_tree_keys<op, float>(table, Element::float32);
  fill_tree_keys<op, double>(table, Element::float64);
}

constexpr TreeKernels make_tree_kernels() {
  TreeKernels table{};
  fill_tree_keys<KeyOp::squares>(table);
  fill_tree_keys<KeyOp::absolutes>(table);
  fill_tree_keys<KeyOp::maximum>(table);
  table.insert = insert_entry;
  return table;
}

}  // namespace VICINAL_SIMD_NAMESPACE
}  // namespace vicinal::cpu
HWY_AFTER_NAMESPACE();
