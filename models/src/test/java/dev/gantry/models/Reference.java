// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models;

import static org.assertj.core.api.Assertions.assertThat;

import ai.djl.Model;
import ai.djl.inference.Predictor;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.translate.NoopTranslator;
import ai.djl.translate.TranslateException;
import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;

/// Inputs, and what the reference library answers to them: a folder's `expected.json`. An expected value that is null
/// there, and NaN here, belongs to padding and is not compared: nobody reads it.
///
/// @param generated a prompt and the tokens that follow, if there are any
record Reference(
    Path folder,
    SequencedMap<String, Values> inputs,
    SequencedMap<String, Values> outputs,
    double tolerance,
    List<Long> generated) {
  /// @param dtype empty for outputs
  record Values(Shape shape, String dtype, List<Double> values) {
    NDArray array(NDManager manager) {
      if (dtype.equals("int64")) {
        return manager.create(values.stream().mapToLong(Double::longValue).toArray(), shape);
      }
      float[] floats = new float[values.size()];
      for (int i = 0; i < floats.length; i++) {
        floats[i] = values.get(i).floatValue();
      }
      return manager.create(floats, shape);
    }
  }

  static Reference of(Path folder) throws IOException {
    return of(folder, "expected.json");
  }

  static Reference of(Path folder, String file) throws IOException {
    SequencedMap<String, Values> inputs = new LinkedHashMap<>();
    SequencedMap<String, Values> outputs = new LinkedHashMap<>();
    double tolerance = 2e-4;
    List<Long> generated = List.of();
    try (JsonParser json = new JsonFactory().createParser(folder.resolve(file).toFile())) {
      json.nextToken();
      while (json.nextToken() == JsonToken.FIELD_NAME) {
        String name = json.currentName();
        json.nextToken();
        switch (name) {
          case "inputs" -> values(json, inputs);
          case "outputs" -> values(json, outputs);
          case "tolerance" -> tolerance = json.getDoubleValue();
          case "generated" -> generated = numbers(json).stream().map(Double::longValue).toList();
          default -> json.skipChildren();
        }
      }
    }
    return new Reference(folder, inputs, outputs, tolerance, generated);
  }

  private static void values(JsonParser json, Map<String, Values> all) throws IOException {
    while (json.nextToken() == JsonToken.FIELD_NAME) {
      String name = json.currentName();
      json.nextToken();
      String dtype = "";
      List<Double> shape = List.of();
      List<Double> values = List.of();
      while (json.nextToken() == JsonToken.FIELD_NAME) {
        String field = json.currentName();
        json.nextToken();
        switch (field) {
          case "dtype" -> dtype = json.getText();
          case "shape" -> shape = numbers(json);
          case "values" -> values = numbers(json);
          default -> json.skipChildren();
        }
      }
      all.put(
          name,
          new Values(
              new Shape(shape.stream().mapToLong(Double::longValue).toArray()), dtype, values));
    }
  }

  private static List<Double> numbers(JsonParser json) throws IOException {
    List<Double> numbers = new ArrayList<>();
    while (json.nextToken() != JsonToken.END_ARRAY) {
      numbers.add(json.currentToken() == JsonToken.VALUE_NULL ? Double.NaN : json.getDoubleValue());
    }
    return numbers;
  }

  /// A model's answers to the inputs, by output.
  static SequencedMap<String, float[]> answers(HubModel hub, Model model, Reference asked)
      throws TranslateException {
    SequencedMap<String, float[]> answers = new LinkedHashMap<>();
    try (NDManager manager = model.getNDManager().newSubManager();
        Predictor<NDList, NDList> predictor = model.newPredictor(new NoopTranslator())) {
      Map<String, NDArray> inputs = new LinkedHashMap<>();
      asked.inputs().forEach((name, values) -> inputs.put(name, values.array(manager)));
      try (NDList outputs = predictor.predict(hub.arranged(inputs))) {
        assertThat(outputs).extracting(NDArray::getName).isEqualTo(hub.outputs());
        for (int i = 0; i < outputs.size(); i++) {
          answers.put(
              hub.outputs().get(i), outputs.get(i).toType(DataType.FLOAT32, false).toFloatArray());
        }
      }
    }
    return answers;
  }

  void requireAnsweredBy(HubModel hub, Model model) throws TranslateException {
    requireAnsweredBy(hub, model, tolerance);
  }

  void requireAnsweredBy(HubModel hub, Model model, double within) throws TranslateException {
    SequencedMap<String, float[]> answers = answers(hub, model, this);
    assertThat(answers.keySet()).containsAll(outputs.keySet());
    outputs.forEach((name, expected) ->
        assertThat(farthest(answers.get(name), expected.values()))
            .as("the largest difference in %s of %s", name, folder)
            .isLessThanOrEqualTo(within));
  }

  /// The greatest double where a value is NaN that should not be.
  private static double farthest(float[] values, List<Double> expected) {
    assertThat(values).hasSize(expected.size());
    double farthest = 0;
    for (int i = 0; i < values.length; i++) {
      double difference = Math.abs(values[i] - expected.get(i));
      if (!Double.isNaN(expected.get(i))) {
        farthest = Math.max(farthest, Double.isNaN(difference) ? Double.MAX_VALUE : difference);
      }
    }
    return farthest;
  }
}
