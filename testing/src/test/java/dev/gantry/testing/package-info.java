// SPDX-License-Identifier: Apache-2.0
/// Helpers for the tests of every module: files of known bytes, file calls that fail on purpose,
/// and checks for leaks.
@NullMarked
package dev.gantry.testing;

import org.jspecify.annotations.NullMarked;
