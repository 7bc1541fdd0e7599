// SPDX-License-Identifier: Apache-2.0
/// Files behind `http` and `https` URLs, read by ranges.
@NullMarked
package dev.gantry.core.internal.http;

import org.jspecify.annotations.NullMarked;
