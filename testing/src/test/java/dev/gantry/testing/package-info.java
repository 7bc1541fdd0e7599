// SPDX-License-Identifier: Apache-2.0
/// What tests of every module need: files of known bytes, file calls that fail on purpose, and a
/// look for leaks.
@NullMarked
package dev.gantry.testing;

import org.jspecify.annotations.NullMarked;
