// SPDX-License-Identifier: Apache-2.0
/// Lets DJL load weights files through its own API: DJL's service loader finds the engine of this
/// package.
@NullMarked
package dev.gantry.djl.internal.engine;

import org.jspecify.annotations.NullMarked;
