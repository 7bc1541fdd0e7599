// SPDX-License-Identifier: Apache-2.0
/// What a bench has measured, as data, and its JSON.
@NullMarked
package dev.gantry.cli.internal.bench.result;

import org.jspecify.annotations.NullMarked;
