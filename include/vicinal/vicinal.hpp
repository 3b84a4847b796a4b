// The whole public face of vicinal in one include.
#pragma once

#include "vicinal/classify.hpp"
#include "vicinal/cocluster.hpp"
#include "vicinal/context.hpp"
#include "vicinal/cross_validate.hpp"
#include "vicinal/device.hpp"
#include "vicinal/error.hpp"
#include "vicinal/generate.hpp"
#include "vicinal/graph.hpp"
#include "vicinal/io.hpp"
#include "vicinal/kmeans.hpp"
#include "vicinal/knn.hpp"
#include "vicinal/lle.hpp"
#include "vicinal/lof.hpp"
<<<<<<< HEAD
#include "vicinal/neighbor_model.hpp"
#include "vicinal/regress.hpp"
=======
#include "vicinal/match.hpp"
#include "vicinal/polygon_file.hpp"
#include "vicinal/polygons.hpp"
>>>>>>> M
#include "vicinal/table.hpp"
#include "vicinal/version.hpp"
#include "vicinal/vote.hpp"
