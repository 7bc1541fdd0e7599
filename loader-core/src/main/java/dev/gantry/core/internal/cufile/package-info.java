// SPDX-License-Identifier: Apache-2.0
/// Uses what libcufile offers beside plain reads and writes: registered memory, and batches and streams of requests.
@NullMarked
package dev.gantry.core.internal.cufile;

import org.jspecify.annotations.NullMarked;
