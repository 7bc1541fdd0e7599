// SPDX-License-Identifier: Apache-2.0
@NullMarked
package dev.gantry.formats.internal.json;

import org.jspecify.annotations.NullMarked;
