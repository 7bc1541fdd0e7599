// SPDX-License-Identifier: Apache-2.0
@NullMarked
package dev.gantry.formats.internal.images;

import org.jspecify.annotations.NullMarked;
