// SPDX-License-Identifier: Apache-2.0
/// Programs that choose the samples of a dataset.
@NullMarked
package dev.gantry.samples.datasets;

import org.jspecify.annotations.NullMarked;
