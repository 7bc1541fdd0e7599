// SPDX-License-Identifier: Apache-2.0
/// A session and its operations: load, map, write, ring.
@NullMarked
package dev.gantry.core.internal.session;

import org.jspecify.annotations.NullMarked;
