// SPDX-License-Identifier: Apache-2.0
/// Programs that write datasets, train from them and choose their samples.
@NullMarked
package dev.gantry.samples.datasets;

import org.jspecify.annotations.NullMarked;
