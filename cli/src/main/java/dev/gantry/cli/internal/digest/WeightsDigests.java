// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.digest;

import com.fasterxml.jackson.core.JsonGenerator;
import dev.gantry.cli.internal.output.Progress;
import dev.gantry.cli.internal.output.Report;
import dev.gantry.cli.internal.output.Transfers;
import dev.gantry.core.Device;
import dev.gantry.core.TransferReport;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.weights.TensorReading;
import dev.gantry.formats.spi.StoredTensor;
import dev.gantry.formats.spi.WeightsCatalogue;
import java.io.IOException;
import java.io.PrintWriter;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;

/// The SHA-256 of each tensor of some weights.
///
/// @param byName lower-case hexadecimal
/// @param transfer how many bytes each transport carried
public record WeightsDigests(
    WeightsCatalogue weights, Map<String, String> byName, TransferReport transfer)
    implements Report {
  /// Compares the files' own checksums first.
  public static WeightsDigests of(GantrySession session, WeightsCatalogue weights, Device device) {
    SequencedMap<String, List<StoredTensor>> tensors = new LinkedHashMap<>();
    for (StoredTensor tensor : weights.tensors().values()) {
      tensors.put(tensor.name(), List.of(tensor));
    }
    TensorReading.verify(weights);
    try (Progress bar = new Progress("digest", weights.totalBytes())) {
      Digests digests = new Digests(session, device, bar);
      return new WeightsDigests(weights, digests.of(tensors), digests.report());
    }
  }

  @Override
  public void print(PrintWriter out) {
    Digests.print(byName, out);
  }

  @Override
  public void write(JsonGenerator json) throws IOException {
    json.writeStartObject();
    json.writeObjectFieldStart("tensors");
    for (StoredTensor tensor : weights.tensors().values()) {
      Digests.write(tensor.name(), tensor.dtype(), tensor.shape(), byName, json);
    }
    json.writeEndObject();
    json.writeNumberField("bytes", weights.totalBytes());
    Transfers.writeTransports(transfer, json);
    json.writeEndObject();
  }
}
