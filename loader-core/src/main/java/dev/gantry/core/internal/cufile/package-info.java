// SPDX-License-Identifier: Apache-2.0
/// What libcufile offers beside reads and writes: its registrations of memory.
@NullMarked
package dev.gantry.core.internal.cufile;

import org.jspecify.annotations.NullMarked;
