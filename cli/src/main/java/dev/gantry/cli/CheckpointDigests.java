package dev.gantry.cli;

import com.fasterxml.jackson.core.JsonGenerator;
import dev.gantry.core.Device;
import dev.gantry.core.TransferReport;
import dev.gantry.core.internal.plan.Wanted;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.safetensors.SafetensorsCheckpoint;
import dev.gantry.formats.safetensors.TensorInfo;
import java.io.IOException;
import java.io.PrintWriter;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;

/// The SHA-256 of each tensor of a checkpoint.
///
/// @param byName lower-case hexadecimal
/// @param transfer by which paths the bytes came
record CheckpointDigests(
    SafetensorsCheckpoint checkpoint, Map<String, String> byName, TransferReport transfer)
    implements Report {
  static CheckpointDigests of(
      GantrySession session, SafetensorsCheckpoint checkpoint, Device device) {
    SequencedMap<String, List<Wanted>> tensors = new LinkedHashMap<>();
    for (TensorInfo tensor : checkpoint.tensors().values()) {
      tensors.put(tensor.name(), List.of(tensor.wanted()));
    }
    try (Progress bar = new Progress("digest", checkpoint.totalBytes())) {
      Digests digests = new Digests(session, device, bar);
      return new CheckpointDigests(checkpoint, digests.of(tensors), digests.report());
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
    for (TensorInfo tensor : checkpoint.tensors().values()) {
      Digests.write(tensor.name(), tensor.dtype(), tensor.shape(), byName, json);
    }
    json.writeEndObject();
    json.writeNumberField("bytes", checkpoint.totalBytes());
    Digests.writePaths(transfer, json);
    json.writeEndObject();
  }
}
