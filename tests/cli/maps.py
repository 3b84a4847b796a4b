"""Maps for tests: squares as GeoJSON."""

import json


def square(x, y, size=1.0, z=None):
    ring = [[x, y], [x + size, y], [x + size, y + size], [x, y + size], [x, y]]
    return [[point + [z] for point in ring]] if z is not None else [ring]


def layer(path, geometries, names=None, crs=None, **columns):
    """GeoJSON: geometries as (type, coordinates), or a whole geometry, or None; `columns`: a list of values each."""
    features = []
    for i, geometry in enumerate(geometries):
        if isinstance(geometry, tuple):
            geometry = {"type": geometry[0], "coordinates": geometry[1]}
        properties = {"name": names[i] if names else f"{i:04d}"}
        properties |= {column: values[i] for column, values in columns.items()}
        features.append({"type": "Feature", "properties": properties, "geometry": geometry})
    whole = {"type": "FeatureCollection", "features": features}
    if crs:
        whole["crs"] = {"type": "name", "properties": {"name": crs}}
    path.write_text(json.dumps(whole))
    return path


def polygons(*corners, size=1.0):
    return [("Polygon", square(x, y, size)) for x, y in corners]
