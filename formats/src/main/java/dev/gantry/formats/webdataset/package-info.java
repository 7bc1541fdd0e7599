// SPDX-License-Identifier: Apache-2.0
/// The fields of WebDataset samples.
@NullMarked
package dev.gantry.formats.webdataset;

import org.jspecify.annotations.NullMarked;
