// {fmt}'s functions, compiled here once. Header-only, each source that formats a sentence would compile them all again,
// which takes longer than the source itself; Debian's shared library would be one more thing to carry along.
// A source includes <fmt/core.h> for sentences, and <fmt/format.h> only for what core.h lacks (fmt::join).
#include <fmt/format-inl.h>

FMT_BEGIN_NAMESPACE
namespace detail {

// What the headers leave to be instantiated elsewhere, for the one character type that is used here.
template thousands_sep_result<char> thousands_sep_impl<char>(locale_ref);
template char decimal_point_impl(locale_ref);
template void buffer<char>::append(const char*, const char*);
template void vformat_to(buffer<char>&, string_view, basic_format_args<FMT_BUFFER_CONTEXT(char)>, locale_ref);

}  // namespace detail
FMT_END_NAMESPACE
