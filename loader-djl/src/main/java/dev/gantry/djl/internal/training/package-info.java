// SPDX-License-Identifier: Apache-2.0
/// The state of a training that DJL keeps private (parameters on each device, the optimizer's
/// arrays and counts, random generators), and its names in a checkpoint.
@NullMarked
package dev.gantry.djl.internal.training;

import org.jspecify.annotations.NullMarked;
