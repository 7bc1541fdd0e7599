// SPDX-License-Identifier: Apache-2.0
@NullMarked
package dev.gantry.formats.internal.torch;

import org.jspecify.annotations.NullMarked;
