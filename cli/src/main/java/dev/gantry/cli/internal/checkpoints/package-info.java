// SPDX-License-Identifier: Apache-2.0
/// Lists, verifies and removes checkpoints, and compares weights.
@NullMarked
package dev.gantry.cli.internal.checkpoints;

import org.jspecify.annotations.NullMarked;
