// SPDX-License-Identifier: Apache-2.0
/// Plans of one batch of a ring: its reads, host writes, copies, gathers and normalised samples.
@NullMarked
package dev.gantry.core.internal.batch;

import org.jspecify.annotations.NullMarked;
