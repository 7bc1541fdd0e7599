// SPDX-License-Identifier: Apache-2.0
/// Reads Parquet files, and writes their rows as samples.
@NullMarked
package dev.gantry.cli.internal.parquet;

import org.jspecify.annotations.NullMarked;
