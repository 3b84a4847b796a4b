"""The pictures that show no data: the layers of the sources, and a search in shards. figures.py draws and compares them."""

from drawing import svg, text


def box(theme, x, y, width, height, title, note, colour, strong=False):
    words = text(x + width / 2, y + height / 2 + (-3 if note else 4), title, theme["text"], 13, "600", "middle")
    if note:
        words += text(x + width / 2, y + height / 2 + 13, note, theme["soft"], 11, "normal", "middle")
    return (f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="6" fill="{colour}" '
            f'fill-opacity="{0.22 if strong else 0.1}" stroke="{colour}"/>\n{words}')


def arrows_down(arrows, theme):
    """Each (x, top, bottom)."""
    path = "".join(f"M{x} {top + 1}V{bottom - 2}m-4 -5l4 5l4 -5" for x, top, bottom in arrows)
    return f'<path d="{path}" stroke="{theme["soft"]}" stroke-width="1.4" fill="none"/>\n'


def draw_layers(_, theme):
    """Architecture: the layers, from the caller down."""
    drawn = ""
    blue, orange, green, purple = theme["classes"][:4]
    drawn += box(theme, 4, 4, 300, 48, "cli/", "the command vicinal", blue)
    drawn += box(theme, 320, 4, 300, 48, "bench/", "vicinal-bench", blue)
    drawn += box(theme, 636, 4, 316, 48, "your program", "", blue)
    drawn += box(theme, 4, 72, 948, 40, "include/vicinal/", "the public headers", blue, True)
    drawn += box(theme, 4, 132, 632, 48, "ops/", "check the arguments, plan, call the backend, make the result", green)
    drawn += box(theme, 652, 132, 300, 48, "io/", "readers and writers of files", green)
    drawn += box(theme, 4, 200, 632, 40, "backend/", "one interface for each subject", purple, True)
    drawn += box(theme, 4, 260, 308, 48, "cpu/", "the host's backend", orange)
    drawn += box(theme, 328, 260, 308, 48, "plugin/cuda/", "calls libvicinal_cuda.so through plugin/abi/", orange)
    drawn += box(theme, 652, 260, 300, 48, "plugin/gdal/", "calls libvicinal_geo.so through plugin/abi/", orange)
    drawn += box(theme, 328, 328, 308, 48, "cuda/", "kernels, launches and device memory", orange)
    drawn += box(theme, 652, 328, 300, 48, "gdal/", "files of polygons", orange)
    drawn += box(theme, 4, 328, 308, 48, "solver/  geo/  simd/", "methods and vector kernels of the host", orange)
    drawn += box(theme, 4, 396, 948, 40, "formulas/  core/",
                 "arithmetic of host and device; threads, memory, order, distances", theme["dot"])
    arrows = [(154, 52, 72), (470, 52, 72), (794, 52, 72), (320, 112, 132), (802, 112, 132), (320, 180, 200),
              (158, 240, 260), (482, 240, 260), (802, 180, 260), (482, 308, 328), (802, 308, 328), (158, 308, 328),
              (158, 376, 396), (482, 376, 396)]
    drawn += arrows_down(arrows, theme)
    return svg(956, 440, "The layers of the sources, from the caller down", drawn)


def draw_shards(_, theme):
    """A search in four shards, from the table down to the merged graph."""
    blue, orange, green, purple = theme["classes"][:4]
    drawn = ""
    for shard, colour in enumerate((blue, orange, green, purple)):
        x, begin = 4 + 240 * shard, 1000 * shard
        drawn += box(theme, x, 4, 228, 44, f"rows {begin:,} to {begin + 999:,}", "a shard of the table", colour, True)
        drawn += box(theme, x, 72, 228, 44, f"vicinal knn --rows {begin}:{begin + 1000}", "a process on any machine", colour)
        drawn += box(theme, x, 140, 228, 44, f"{begin}.part", "k rows of the shard for each query", colour, True)
    middles = [118 + 240 * shard for shard in range(4)]
    drawn += arrows_down([(x, top, top + 24) for x in middles for top in (48, 116, 184)], theme)
    drawn += box(theme, 4, 208, 948, 44, "vicinal merge", "keeps the k nearest of all shards for each query", theme["dot"])
    drawn += arrows_down([(478, 252, 276)], theme)
    drawn += box(theme, 4, 276, 948, 44, "graph.npz", "the bits of one search of the whole table", theme["dot"], True)
    return svg(956, 324, "A table in four shards: a process for each, a part of each, and the merged graph", drawn)


PICTURES = {
    "layers": (lambda _: None, draw_layers),
    "shards": (lambda _: None, draw_shards),
}
