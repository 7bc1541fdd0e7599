// SPDX-License-Identifier: Apache-2.0
/// What the bench shares with the demo.
@NullMarked
package dev.gantry.cli.internal.demo;

import org.jspecify.annotations.NullMarked;
