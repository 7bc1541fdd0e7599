// SPDX-License-Identifier: Apache-2.0
/// What libcufile offers beside reads and writes: registrations of memory, batches and streams of
/// requests.
@NullMarked
package dev.gantry.core.internal.cufile;

import org.jspecify.annotations.NullMarked;
