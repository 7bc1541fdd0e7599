// SPDX-License-Identifier: Apache-2.0
/// Opens files of any store, and reads local ones.
@NullMarked
package dev.gantry.core.internal.store;

import org.jspecify.annotations.NullMarked;
