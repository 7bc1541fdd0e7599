// SPDX-License-Identifier: Apache-2.0
/// Gantry for DJL: loads weights as NDArrays that own their memory, reads files of samples ahead as batches,
/// and saves and resumes trainings.
@NullMarked
package dev.gantry.djl;

import org.jspecify.annotations.NullMarked;
