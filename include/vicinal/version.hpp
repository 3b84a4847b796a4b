// The library's version, as numbers and as text.
#pragma once

#define VICINAL_VERSION_MAJOR 0
#define VICINAL_VERSION_MINOR 1
#define VICINAL_VERSION_PATCH 0
#define VICINAL_VERSION "0.1.0"
