// SPDX-License-Identifier: Apache-2.0
/// Computes the SHA-256 of tensors and records that were loaded.
@NullMarked
package dev.gantry.cli.internal.digest;

import org.jspecify.annotations.NullMarked;
