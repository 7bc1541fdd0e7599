package dev.gantry.formats.tfrecord.index;

import dev.gantry.core.DType;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.Shape;
import dev.gantry.formats.internal.safetensors.SafetensorsHeader;
import dev.gantry.formats.spi.StoredTensor;
import dev.gantry.formats.tfrecord.FeatureKind;
import java.util.HashSet;
import java.util.Set;

/// The rule of an index's tensors: those that the notes need, of the right dtypes and shapes, and
/// no others.
final class TensorCheck {
  private final SafetensorsHeader header;
  private final IndexNotes notes;
  private final Set<String> expected = new HashSet<>();

  TensorCheck(SafetensorsHeader header, IndexNotes notes) {
    this.header = header;
    this.notes = notes;
  }

  /// @throws MalformedFileException naming the first tensor that breaks the rule
  void run() {
    Shape records = Shape.of(notes.records());
    require(IndexFormat.RECORD_OFFSET, DType.U64, records);
    for (IndexedFeature feature : notes.features()) {
      String offset = IndexFormat.tensor(feature.name(), IndexFormat.OFFSET);
      if (feature.isDirect() && feature.kind().orElseThrow() == FeatureKind.INT64) {
        require(
            IndexFormat.tensor(feature.name(), IndexFormat.VALUES),
            DType.I64,
            Shape.of(notes.records(), feature.elements().orElseThrow()));
      } else if (feature.isDirect()) {
        require(offset, DType.U32, records);
      } else if (header.tensors().containsKey(offset) && mayDiffer(feature)) {
        require(offset, DType.U32, records);
        require(IndexFormat.tensor(feature.name(), IndexFormat.LENGTH), DType.U32, records);
      }
    }
    for (StoredTensor tensor : header.tensors().values()) {
      if (!expected.contains(tensor.name())) {
        throw malformed(tensor, "unexpected-tensor", "nothing is known about it");
      }
    }
  }

  /// Whether each record may have a value in one place, of a length of its own.
  private static boolean mayDiffer(IndexedFeature feature) {
    return feature.missing() == 0
        && feature.kind().filter(kind -> kind != FeatureKind.INT64).isPresent();
  }

  private void require(String name, DType dtype, Shape shape) {
    expected.add(name);
    StoredTensor tensor = header.tensors().get(name);
    if (tensor == null) {
      throw new MalformedFileException(
          header.file(), 0, "missing-tensor", "the index has no tensor '" + name + "'");
    }
    if (tensor.dtype() != dtype || !tensor.shape().equals(shape)) {
      throw malformed(
          tensor,
          "invalid-tensor",
          tensor.dtype() + " " + tensor.shape() + ", not " + dtype + " " + shape);
    }
  }

  private MalformedFileException malformed(StoredTensor tensor, String kind, String detail) {
    return new MalformedFileException(
        header.file(), tensor.extent().offset(), kind, "tensor '" + tensor.name() + "': " + detail);
  }
}
