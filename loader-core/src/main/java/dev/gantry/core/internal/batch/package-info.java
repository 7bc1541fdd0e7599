// SPDX-License-Identifier: Apache-2.0
/// What one batch of a ring consists of: its reads, host writes and copies.
@NullMarked
package dev.gantry.core.internal.batch;

import org.jspecify.annotations.NullMarked;
