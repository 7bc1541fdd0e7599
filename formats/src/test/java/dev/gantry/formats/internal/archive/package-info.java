// SPDX-License-Identifier: Apache-2.0
@NullMarked
package dev.gantry.formats.internal.archive;

import org.jspecify.annotations.NullMarked;
