// SPDX-License-Identifier: Apache-2.0
/// SHA-256 of what the engine loaded.
@NullMarked
package dev.gantry.cli.internal.digest;

import org.jspecify.annotations.NullMarked;
