"""Plug-ins that packages bring. A package has an entry point of the group `vicinal.plugins`: its name is that of the
plug-in, its value is the module whose folder contains the file. The module is found, but not imported."""

from __future__ import annotations

import os
from importlib import metadata, util

from vicinal import _core

GROUP = "vicinal.plugins"


def find(plugin: str) -> tuple[bytes, str]:
    """The path of the file that a package brings for a plug-in ("cuda", "geo"), and a sentence that says why it cannot
    be used; both are empty where no package brings one. The extension calls it when the plug-in is first needed."""
    try:
        return _found(plugin)
    except Exception as error:  # of a package whose files are damaged
        return b"", f"the packages cannot be asked for the plug-in {plugin}: {type(error).__name__}: {error}"


def _found(plugin: str) -> tuple[bytes, str]:
    offers = list(metadata.entry_points(group=GROUP, name=plugin))
    if not offers:
        return b"", ""
    packages = sorted(f"{offer.dist.name} {offer.dist.version}" if offer.dist else offer.value for offer in offers)
    if len(offers) > 1:
        return b"", f"several packages bring the plug-in {plugin}: {', '.join(packages)}; uninstall all but one"
    (offer,) = offers
    if offer.dist and offer.dist.version != _core.__version__:
        wanted = f"{offer.dist.name}=={_core.__version__}"
        return b"", f"the plug-in {plugin} is that of {packages[0]}, but vicinal {_core.__version__} needs {wanted}"
    spec = util.find_spec(offer.value)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        path = os.path.join(folder, f"libvicinal_{plugin}.so")
        if os.path.isfile(path):
            return os.fsencode(path), ""
    return b"", f"the package {packages[0]} does not contain its plug-in {plugin}; install it again"
