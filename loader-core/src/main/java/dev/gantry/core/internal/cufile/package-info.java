// SPDX-License-Identifier: Apache-2.0
/// Registers memory with libcufile, and opens libcufile's driver with a session's settings.
@NullMarked
package dev.gantry.core.internal.cufile;

import org.jspecify.annotations.NullMarked;
