// SPDX-License-Identifier: Apache-2.0
@NullMarked
package dev.gantry.formats.internal.weights;

import org.jspecify.annotations.NullMarked;
