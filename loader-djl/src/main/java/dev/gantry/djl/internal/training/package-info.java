// SPDX-License-Identifier: Apache-2.0
/// The state of a training that DJL keeps private: parameters on each device, the optimizer's arrays
/// and counts, random generators; and how a checkpoint spells it.
@NullMarked
package dev.gantry.djl.internal.training;

import org.jspecify.annotations.NullMarked;
