package dev.gantry.djl;

import dev.gantry.core.MisuseException;
import java.util.Map;
import java.util.Optional;

/// Which tensor of a checkpoint fills which parameter of a block. DJL's names carry the place of
/// each child (`01Linear_weight`), those of a checkpoint the names of the layers (`fc1.weight`), so
/// somebody must say which is which.
@FunctionalInterface
public interface ParameterNames {
  /// The tensor for the parameter of this name, as `Block.getParameters()` spells it; empty to
  /// leave the parameter as it is.
  Optional<String> tensorFor(String parameterName);

  /// The tensors have the parameters' own names.
  static ParameterNames same() {
    return Optional::of;
  }

  /// By table, from parameter to tensor; a parameter that is not in it is an error.
  static ParameterNames of(Map<String, String> tensorByParameter) {
    Map<String, String> table = Map.copyOf(tensorByParameter);
    return parameter -> {
      String tensor = table.get(parameter);
      if (tensor == null) {
        throw new MisuseException(
            "no tensor is named for parameter '" + parameter + "'; named are " + table.keySet());
      }
      return Optional.of(tensor);
    };
  }
}
