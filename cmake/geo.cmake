# VICINAL_GEO: whether the plug-in for files of polygons is built. AUTO: where GDAL, GEOS and PROJ are there, without a
# word where they are not; ON: it is an error if one is missing; OFF. Part of another project it is built only when asked
# for.
if(PROJECT_IS_TOP_LEVEL)
  set(VICINAL_GEO AUTO CACHE STRING "Build the plug-in for files of polygons: AUTO, ON or OFF")
else()
  set(VICINAL_GEO OFF CACHE STRING "Build the plug-in for files of polygons: AUTO, ON or OFF")
endif()
set_property(CACHE VICINAL_GEO PROPERTY STRINGS AUTO ON OFF)

set(VICINAL_BUILD_GEO OFF)
if(VICINAL_GEO STREQUAL "AUTO" OR VICINAL_GEO)
  find_path(VICINAL_GDAL_INCLUDE gdal_priv.h PATH_SUFFIXES gdal)
  find_path(VICINAL_GEOS_INCLUDE geos_c.h)
  find_path(VICINAL_PROJ_INCLUDE proj.h)
  find_library(VICINAL_GDAL_LIBRARY gdal)
  find_library(VICINAL_GEOS_LIBRARY geos_c)
  mark_as_advanced(VICINAL_GDAL_INCLUDE VICINAL_GEOS_INCLUDE VICINAL_PROJ_INCLUDE VICINAL_GDAL_LIBRARY
    VICINAL_GEOS_LIBRARY)
  if(VICINAL_GDAL_INCLUDE AND VICINAL_GEOS_INCLUDE AND VICINAL_PROJ_INCLUDE AND VICINAL_GDAL_LIBRARY AND
      VICINAL_GEOS_LIBRARY)
    set(VICINAL_BUILD_GEO ON)
  elseif(NOT VICINAL_GEO STREQUAL "AUTO")
    message(FATAL_ERROR "VICINAL_GEO is ON, but GDAL, GEOS or PROJ is not there: install libgdal-dev and libgeos-dev")
  endif()
endif()
