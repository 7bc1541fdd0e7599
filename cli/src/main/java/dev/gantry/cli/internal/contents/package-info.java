// SPDX-License-Identifier: Apache-2.0
/// What doctor, inspect and index show.
@NullMarked
package dev.gantry.cli.internal.contents;

import org.jspecify.annotations.NullMarked;
