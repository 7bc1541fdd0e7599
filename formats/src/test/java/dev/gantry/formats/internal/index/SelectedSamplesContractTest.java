// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.index;

import dev.gantry.formats.internal.batches.SelectedSamples;
import dev.gantry.formats.internal.order.SampleBits;
import dev.gantry.formats.spi.SampleCatalogue;
import java.io.IOException;
import java.util.List;
import java.util.stream.LongStream;

/// A selection of the files' records; the files have 6, 0 and 4 of them.
class SelectedSamplesContractTest extends TfRecordCatalogueContractTest {
  private static final List<long[]> KEPT =
      List.of(new long[] {1, 2, 5}, new long[] {}, new long[] {0, 3});

  @Override
  protected SampleCatalogue open() throws IOException {
    return SelectedSamples.of(
        super.open(), SampleBits.of(10, kept -> LongStream.of(1, 2, 5, 6, 9).forEach(kept)));
  }

  @Override
  protected byte[] value(String field, int dataFile, long sample) {
    return super.value(field, dataFile, KEPT.get(dataFile)[(int) sample]);
  }
}
