// SPDX-License-Identifier: Apache-2.0
/// One format written as another.
@NullMarked
package dev.gantry.cli.internal.convert;

import org.jspecify.annotations.NullMarked;
