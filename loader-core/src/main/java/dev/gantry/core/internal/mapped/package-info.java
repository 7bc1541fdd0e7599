// SPDX-License-Identifier: Apache-2.0

/// Keeps files in memory, so that a GPU or the CPU gathers the rows of a batch from them. Files
/// for GPUs are mapped and registered with the CUDA driver; files for the CPU are copied.
@NullMarked
package dev.gantry.core.internal.mapped;

import org.jspecify.annotations.NullMarked;
