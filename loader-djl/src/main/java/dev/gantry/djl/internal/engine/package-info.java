// SPDX-License-Identifier: Apache-2.0
/// How DJL's own ways to load a model reach weights files: an engine that its service loader finds.
@NullMarked
package dev.gantry.djl.internal.engine;

import org.jspecify.annotations.NullMarked;
