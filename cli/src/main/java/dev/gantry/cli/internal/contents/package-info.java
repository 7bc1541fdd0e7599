// SPDX-License-Identifier: Apache-2.0
/// What inspect and index show.
@NullMarked
package dev.gantry.cli.internal.contents;

import org.jspecify.annotations.NullMarked;
