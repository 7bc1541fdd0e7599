// SPDX-License-Identifier: Apache-2.0
/// A reader and a writer of strict JSON.
@NullMarked
package dev.gantry.formats.internal.json;

import org.jspecify.annotations.NullMarked;
