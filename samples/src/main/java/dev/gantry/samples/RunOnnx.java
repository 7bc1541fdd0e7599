// SPDX-License-Identifier: Apache-2.0
package dev.gantry.samples;

import ai.onnxruntime.OnnxTensor;
import ai.onnxruntime.OnnxTensorLike;
import ai.onnxruntime.OrtEnvironment;
import ai.onnxruntime.OrtException;
import ai.onnxruntime.OrtSession;
import dev.gantry.core.DType;
import dev.gantry.djl.LoadOptions;
import dev.gantry.djl.TensorInfo;
import dev.gantry.djl.TensorMemory;
import dev.gantry.djl.Weights;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;

/// Runs an ONNX graph by ONNX Runtime, with weights that Gantry loaded. ONNX Runtime reads them where
/// they are: nothing is copied.
///
/// `MODEL.onnx` is a graph without its weights: its initializers are external, named as the tensors in
/// `FOLDER`. `samples/src/main/resources/digits.onnx` is one, for `samples/src/main/resources/model`.
/// `ORT` is the jar of `com.microsoft.onnxruntime:onnxruntime`:
///
/// ```
/// java --enable-native-access=ALL-UNNAMED -cp 'cli/target/lib/*:ORT' RunOnnx.java MODEL.onnx FOLDER
/// ```
public final class RunOnnx {
  private RunOnnx() {}

  public static void main(String[] arguments) throws OrtException {
    Usage.check("RunOnnx.java MODEL.onnx FOLDER", arguments);
    float[] logits = answer(Path.of(arguments[0]), Path.of(arguments[1]), new float[1][64]);
    System.out.println("the logits of a blank image: " + Arrays.toString(logits));
  }

  /// @param questions `[n, 64]`
  /// @return the logits of the first question
  static float[] answer(Path model, Path folder, float[][] questions) throws OrtException {
    OrtEnvironment environment = OrtEnvironment.getEnvironment();
    // The session reads the memory for as long as it lives, so it is closed first.
    try (Weights weights = Weights.open(folder);
        TensorMemory memory = weights.loadMemory(LoadOptions.defaults());
        OrtSession.SessionOptions options = new OrtSession.SessionOptions()) {
      Map<String, OnnxTensorLike> initializers = new LinkedHashMap<>();
      try {
        for (TensorInfo tensor : memory.tensors().values()) {
          if (tensor.dtype() == DType.F32) {
            initializers.put(tensor.name(), share(environment, memory, tensor));
          }
        }
        options.addExternalInitializers(initializers);
        try (OrtSession session = environment.createSession(model.toString(), options);
            OnnxTensor question = OnnxTensor.createTensor(environment, questions);
            OrtSession.Result result = session.run(Map.of("x", question))) {
          return ((float[][]) result.get(0).getValue())[0];
        }
      } finally {
        initializers.values().forEach(OnnxTensorLike::close);
      }
    }
  }

  private static OnnxTensor share(
      OrtEnvironment environment, TensorMemory memory, TensorInfo tensor) throws OrtException {
    FloatBuffer values =
        memory.segment(tensor.name()).asByteBuffer().order(ByteOrder.nativeOrder()).asFloatBuffer();
    return OnnxTensor.createTensor(environment, values, tensor.shape().toArray());
  }
}
