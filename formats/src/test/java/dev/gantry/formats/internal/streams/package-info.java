// SPDX-License-Identifier: Apache-2.0
@NullMarked
package dev.gantry.formats.internal.streams;

import org.jspecify.annotations.NullMarked;
