// SPDX-License-Identifier: Apache-2.0
@NullMarked
package dev.gantry.core.internal.mapped;

import org.jspecify.annotations.NullMarked;
