// The whole public face of vicinal in one include.
#pragma once

#include "vicinal/classify.hpp"
#include "vicinal/cocluster.hpp"
#include "vicinal/context.hpp"
#include "vicinal/device.hpp"
#include "vicinal/error.hpp"
#include "vicinal/generate.hpp"
#include "vicinal/graph.hpp"
#include "vicinal/io.hpp"
#include "vicinal/kmeans.hpp"
#include "vicinal/knn.hpp"
#include "vicinal/lof.hpp"
#include "vicinal/spectral_cocluster.hpp"
#include "vicinal/table.hpp"
#include "vicinal/version.hpp"
#include "vicinal/vote.hpp"
