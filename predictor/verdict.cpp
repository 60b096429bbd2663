#include "predictor/verdict.h"

namespace stem::predictor {

const char* layer_name(Layer layer) {
  switch (layer) {
#define STEM_LAYER(Name, text) \
  case Layer::Name: return text;
#include "predictor/layers.def"
  }
  return "?";
}

const char* why_text(Why why) {
  switch (why) {
#define STEM_UNKNOWN(Name, text) \
  case Why::Name: return text;
#include "predictor/unknowns.def"
  }
  return "?";
}

}  // namespace stem::predictor
