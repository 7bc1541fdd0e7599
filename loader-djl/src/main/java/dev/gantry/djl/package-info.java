// SPDX-License-Identifier: Apache-2.0
/// DJL's face of Gantry: checkpoints as NDArrays that own their memory, files of samples as batches
/// that are read ahead, and trainings that are saved and go on.
@NullMarked
package dev.gantry.djl;

import org.jspecify.annotations.NullMarked;
