// SPDX-License-Identifier: Apache-2.0
/// WebDataset: samples in tar archives. `docs/webdataset.md` in the source tree states which archives are read.
@NullMarked
package dev.gantry.formats.internal.webdataset;

import org.jspecify.annotations.NullMarked;
